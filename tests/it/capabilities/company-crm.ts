// capabilities/company-crm.ts: the source's third example, with the types and the client that it leaves out.
import { defineTool } from '@agent-spaces/capabilities';
import { fs, json } from '@agent-spaces/std';

/** Who buys from us. */
interface Customer {
  id: string;
  name: string;
  /** What they pay for. */
  tier: 'free' | 'paid';
  /** Who looks after them, who is a customer as well. */
  manager?: Customer;
}

interface Ticket {
  id: string;
  subject: string;
  priority: string;
}

const crmApi = {
  search: async (query: string, limit: number): Promise<Customer[]> => {
    const all: Customer[] = [
      { id: 'c1', name: 'Acme Corp', tier: 'paid', manager: { id: 'c2', name: 'Wile', tier: 'free' } },
      { id: 'c3', name: 'Acme Labs', tier: 'free' },
    ];
    return all.filter((customer) => customer.name.toLowerCase().includes(query)).slice(0, limit);
  },
  createTicket: async (params: { subject: string; priority: string }): Promise<Ticket> => {
    const ticket = { id: 'T-1', subject: params.subject, priority: params.priority };
    await fs.writeFile('ticket.json', json.stringify(ticket));
    console.log('created', ticket);
    return ticket;
  },
};

export const crm = defineTool({
  name: 'crm',
  description: 'Company CRM system',
  
  functions: {
    searchCustomers: {
      description: 'Search for customers',
      parameters: {
        query: { type: 'string', required: true },
        limit: { type: 'number', default: 10 },
      },
      returns: {} as Customer[],
      handler: async ({ query, limit }) => {
        return await crmApi.search(query, limit);
      },
    },
    
    createTicket: {
      description: 'Create support ticket',
      parameters: {
        customerId: { type: 'string', required: true },
        subject: { type: 'string', required: true },
        priority: { type: 'string', enum: ['low', 'medium', 'high'] },
      },
      returns: {} as Ticket,
      requiresApproval: true,
      approvalMessage: (p) => `Create ${p.priority} ticket for customer ${p.customerId}?`,
      handler: async (params) => {
        return await crmApi.createTicket(params);
      },
    },
  },
});
